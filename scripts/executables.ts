// `npm run build:executable`: the whole program with Node, as one file for each platform, in executables/.
// The arguments select platforms. macOS is missing: it does not start executables that are not signed.
import { execFileSync } from 'node:child_process'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createGzip } from 'node:zlib'
import { rolldown } from 'rolldown'
import { CLIENT_PACKAGE, EXECUTABLES } from '../src/lib/client-package.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'executables')
const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** One file: an executable cannot import others. */
async function bundle(file: string): Promise<void> {
  const build = await rolldown({
    input: join(root, 'scripts/executable-entry.ts'),
    cwd: root,
    platform: 'node',
    external: (id) => isBuiltin(id) || id === 'pg-native',
    logLevel: 'warn',
  })
  await build.write({ file, codeSplitting: false })
}

/** The files that `openProgramFiles` reads. */
function listAssets(): Record<string, string> {
  const pages = globSync('web/dist/**/*.*', { cwd: root }).map((name) => name.replaceAll('\\', '/'))
  return Object.fromEntries([...pages, `dist/${CLIENT_PACKAGE}.tgz`].map((name) => [name, join(root, name)]))
}

/** The Node that npm has installed for this machine, or that of another platform from the registry. */
function findNode(platform: string, staging: string): string {
  const name = `node-${platform}`
  const program = platform.startsWith('win') ? 'bin/node.exe' : 'bin/node'
  const installed = join(root, 'node_modules', name, program)
  if (existsSync(installed)) return installed
  const options = ['--silent', '--pack-destination', staging]
  execFileSync('npm', ['pack', `${name}@${optionalDependencies[name]}`, ...options], { cwd: staging })
  const [tarball = ''] = globSync(`${name}-*.tgz`, { cwd: staging })
  mkdirSync(join(staging, name))
  execFileSync('tar', ['-xzf', join(staging, tarball), '-C', join(staging, name)])
  return join(staging, name, 'package', program)
}

async function build(compressed: string, staging: string): Promise<void> {
  const name = compressed.replace(/\.gz$/, '')
  const output = join(staging, name)
  const config = {
    main: join(staging, 'main.mjs'),
    mainFormat: 'module',
    executable: findNode(name.replace(/^adit-|\.exe$/g, ''), staging),
    output,
    disableExperimentalSEAWarning: true,
    execArgv: ['--max-semi-space-size=16'],
    assets: listAssets(),
  }
  writeFileSync(join(staging, 'config.json'), JSON.stringify(config))
  execFileSync(process.execPath, ['--build-sea', join(staging, 'config.json')], { stdio: 'pipe' })
  await pipeline(createReadStream(output), createGzip(), createWriteStream(join(staging, compressed)))
  for (const file of [name, compressed]) renameSync(join(staging, file), join(folder, file))
  const megabytes = (file: string) => `${Math.round(statSync(join(folder, file)).size / 1e6)} MB`
  process.stdout.write(`executables/${name}  ${megabytes(name)}, compressed ${megabytes(compressed)}\n`)
}

const platforms = process.argv.slice(2)
const chosen = EXECUTABLES.filter(
  (name) => platforms.length === 0 || platforms.some((platform) => name.startsWith(`adit-${platform}.`)),
)
if (chosen.length === 0) throw new Error(`Unknown platform. There are: ${EXECUTABLES.join(', ')}`)
mkdirSync(folder, { recursive: true })
// On the same file system, so that a server never sees half of a file.
const staging = mkdtempSync(join(folder, '.build-'))
try {
  await bundle(join(staging, 'main.mjs'))
  for (const name of chosen) await build(name, staging)
} finally {
  rmSync(staging, { recursive: true })
}
