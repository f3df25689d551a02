// Builds the npm package of the client in dist/cli, and its tarball, which servers offer for download. The
// package has no dependencies and runs on Node 20. The inspector's page, which web/build.ts builds, is in it.
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { CLIENT_NODE_MAJOR, CLIENT_PACKAGE } from '../src/lib/client-package.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
export const clientFolder = join(root, 'dist/cli')

/** Checks the version of Node, so its syntax has to work in much older ones. */
const launcher = `#!/usr/bin/env node
if (Number(process.versions.node.split('.')[0]) < ${CLIENT_NODE_MAJOR}) {
  process.stderr.write('adit needs Node ${CLIENT_NODE_MAJOR} or later, but this is ' + process.version + '.\\n')
  process.exit(1)
}
import('./main.js')
  .then(({ main }) => main(process.argv.slice(2)))
  .then((code) => {
    process.exitCode = code
  })
`

const polyfill = (name: string): [string, string] => [join(root, 'scripts/node-20.ts'), name]

/** Rolldown transform for code that has to run on the oldest Node that the client supports. */
export const oldNodeTransform = {
  target: `node${CLIENT_NODE_MAJOR}`,
  inject: {
    'Promise.withResolvers': polyfill('withResolvers'),
    'Map.groupBy': polyfill('groupBy'),
    'URL.parse': polyfill('parseUrl'),
  },
}

async function bundle(folder: string): Promise<void> {
  const build = await rolldown({
    input: { main: join(root, 'src/cli-main.ts') },
    cwd: root,
    platform: 'node',
    external: isBuiltin,
    transform: oldNodeTransform,
    logLevel: 'warn',
  })
  await build.write({ dir: folder, entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
}

const page = join(root, 'web/dist/inspector')

/** Whether the package has the page that was built last; its index names the other files by their content. */
export function hasCurrentPage(): boolean {
  const [built, packed] = [page, join(clientFolder, 'inspector')].map((folder) => {
    const index = join(folder, 'index.html')
    return existsSync(index) ? readFileSync(index, 'utf8') : undefined
  })
  return built === undefined || built === packed
}

export async function buildClientPackage(): Promise<void> {
  // Built in a temporary folder and renamed, because a server may be reading the tarball.
  mkdirSync(join(root, 'dist'), { recursive: true })
  const staging = mkdtempSync(join(root, 'dist/.cli-'))
  try {
    const folder = join(staging, CLIENT_PACKAGE)
    await bundle(folder)
    const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const manifest = {
      name: CLIENT_PACKAGE,
      version,
      description: 'Tunnel client and command line of Adit.',
      license,
      type: 'module',
      bin: { adit: 'adit.js' },
      engines: { node: `>=${CLIENT_NODE_MAJOR}` },
    }
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    writeFileSync(join(folder, 'adit.js'), launcher, { mode: 0o755 })
    cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
    if (existsSync(page)) cpSync(page, join(folder, 'inspector'), { recursive: true })
    const options = ['--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', staging]
    const output = execFileSync('npm', ['pack', folder, ...options], { encoding: 'utf8', cwd: staging })
    const [packed] = JSON.parse(output) as [{ filename: string }]
    renameSync(join(staging, packed.filename), join(root, 'dist', `${CLIENT_PACKAGE}.tgz`))
    rmSync(clientFolder, { recursive: true, force: true })
    renameSync(folder, clientFolder)
  } finally {
    rmSync(staging, { recursive: true })
  }
}
