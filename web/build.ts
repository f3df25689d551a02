// Builds the dashboard, the API reference and the inspector's page into web/dist, unless the existing build
// has the same inputs. Assets of the server are also written with gzip and Brotli compression, so that the
// server only sends files.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = `${root}web/dist`
const hashFile = `${dist}/input-hash`
const LARGE_BYTES = 2_000_000
const log = (line: string) => process.stderr.write(`${line}\n`)

/** SHA-256 of all build inputs. */
function hashInputs(): string {
  const inputs = ['web/**/*', 'src/{client,contract,inspector,lib}/**/*.ts', 'package-lock.json']
  const files = globSync(inputs, { cwd: root, exclude: ['web/dist/**'], withFileTypes: true })
  const hash = createHash('sha256')
  for (const file of files
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort())
    hash.update(file.slice(root.length)).update('\0').update(readFileSync(file)).update('\0')
  return hash.digest('hex')
}

/** The API reference: our page, and Scalar in one file. */
async function copyDocs(): Promise<void> {
  cpSync(`${root}web/docs`, `${dist}/docs`, { recursive: true })
  cpSync(`${root}web/src/icon.svg`, `${dist}/docs/icon.svg`)
  writeFileSync(`${dist}/docs/scalar.js`, await readScalar())
}

/** The Fastify plugin serves the standalone bundle. Its own package would install 230 packages more. */
async function readScalar(): Promise<Buffer> {
  const [{ fastify }, { default: scalar }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ])
  const server = fastify()
  await server.register(scalar, { routePrefix: '/docs', configuration: { content: {} } })
  const { rawPayload } = await server.inject('/docs/js/scalar.js')
  await server.close()
  return rawPayload
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

const inputHash = hashInputs()
if (!existsSync(hashFile) || readFileSync(hashFile, 'utf8') !== inputHash) {
  log('Building the dashboard …')
  const startedAt = performance.now()
  const { build } = await import('vite')
  await build({ root: `${root}web`, logLevel: 'warn' })
  await build({ configFile: `${root}web/vite.inspector.config.ts`, logLevel: 'warn' })
  await copyDocs()
  compress()
  mkdirSync(dist, { recursive: true })
  writeFileSync(hashFile, inputHash)
  log(`Dashboard built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`)
}
