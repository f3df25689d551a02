// Builds the dashboard's page into web/dist, unless what lies there was made from the same sources. Its files are also
// written compressed, so that the server has nothing to do but send them.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = `${root}web/dist`
const stampFile = `${dist}/stamp`
const LARGE_BYTES = 2_000_000
const say = (line: string) => process.stderr.write(`${line}\n`)

/** Of everything that the page is made from. */
function stampOf(): string {
  const files = globSync(['web/**/*', 'src/contract/**/*.ts', 'package-lock.json'], {
    cwd: root,
    exclude: ['web/dist/**'],
    withFileTypes: true,
  })
  const hash = createHash('sha256')
  for (const file of files
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort())
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0')
  return hash.digest('hex')
}

/** Copies the API reference: our page, and Scalar in one file. Without it the server reports that /docs is not built. */
function copyDocs(): void {
  const scalar = `${root}node_modules/@scalar/api-reference/dist/browser/standalone.js`
  if (!existsSync(scalar)) {
    say('@scalar/api-reference is missing: /docs is not built. Run "npm install".')
    return
  }
  cpSync(`${root}web/docs`, `${dist}/docs`, { recursive: true })
  cpSync(`${root}web/src/icon.svg`, `${dist}/docs/icon.svg`)
  cpSync(scalar, `${dist}/docs/scalar.js`)
}

function compress(): void {
  for (const file of globSync('{assets,docs}/*.{js,css,svg}', { cwd: dist })) {
    const bytes = readFileSync(`${dist}/${file}`)
    writeFileSync(`${dist}/${file}.gz`, gzipSync(bytes, { level: 9 }))
    // The best quality takes half a minute for Scalar, and saves a tenth.
    const quality = bytes.length > LARGE_BYTES ? 7 : constants.BROTLI_MAX_QUALITY
    const params = { [constants.BROTLI_PARAM_QUALITY]: quality }
    writeFileSync(`${dist}/${file}.br`, brotliCompressSync(bytes, { params }))
  }
}

const stamp = stampOf()
if (!existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== stamp) {
  say('Building the dashboard …')
  const began = performance.now()
  const { build } = await import('vite')
  await build({ root: `${root}web`, logLevel: 'warn' })
  copyDocs()
  compress()
  mkdirSync(dist, { recursive: true })
  writeFileSync(stampFile, stamp)
  say(`The dashboard is built (${((performance.now() - began) / 1000).toFixed(1)} s).`)
}
