// `npm run pack`: makes the npm packages in packages/ from what was built. `adit` has the server, the CLI and
// the edge; `adit-cli` is the client alone, and `adit-client`, `adit-edge-sdk` and `adit-tunnel` are the
// libraries alone. These four have no dependencies.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CLIENT_NODE_MAJOR } from '../src/lib/client-package.ts'
import { clientFolder } from './client-package.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Library {
  readonly name: string
  /** Folder in src, for the README, and in dist. */
  readonly part: string
  readonly description: string
  /** Versions of Node, if it runs on more than the whole program. */
  readonly node?: string
}

const libraries: Library[] = [
  {
    name: 'adit-client',
    part: 'client',
    description: 'Typed client of the Adit API, for Node and browsers.',
  },
  {
    name: 'adit-edge-sdk',
    part: 'edge-sdk',
    description: 'Verifies Adit API keys and reports usage, for tunnel edges and gateways.',
  },
  {
    name: 'adit-tunnel',
    part: 'tunnel',
    description: 'Opens Adit tunnels from a program.',
    node: `>=${CLIENT_NODE_MAJOR}`,
  },
]

interface Packed {
  readonly name: string
  /** Path of the tarball. */
  readonly file: string
  readonly bytes: number
  readonly unpackedBytes: number
}

/** Packs what is in dist; to be built before. */
export function packAll(destination: string): Packed[] {
  const staging = mkdtempSync(join(tmpdir(), 'adit-pack-'))
  try {
    const staged = libraries.map((library) => stage(library, join(staging, library.name)))
    const folders = [root, clientFolder, ...staged]
    mkdirSync(destination, { recursive: true })
    // Without scripts: the "prepack" of the root would build everything again.
    const options = ['--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', destination]
    const output = execFileSync('npm', ['pack', ...folders, ...options], { encoding: 'utf8', cwd: staging })
    const packed = JSON.parse(output) as {
      name: string
      filename: string
      size: number
      unpackedSize: number
    }[]
    return packed.map(({ name, filename, size, unpackedSize }) => ({
      name,
      file: join(destination, filename),
      bytes: size,
      unpackedBytes: unpackedSize,
    }))
  } finally {
    rmSync(staging, { recursive: true })
  }
}

function stage({ name, part, description, node }: Library, folder: string): string {
  cpSync(join(root, 'dist', part), folder, { recursive: true })
  cpSync(join(root, 'src', part, 'README.md'), join(folder, 'README.md'))
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  const { version, license, type, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const manifest = {
    name,
    version,
    description,
    license,
    type,
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './package.json': './package.json',
    },
    types: './index.d.ts',
    sideEffects: false,
    engines: node === undefined ? engines : { node },
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  return folder
}

const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} kB`

if (import.meta.main) {
  const destination = join(root, 'packages')
  rmSync(destination, { recursive: true, force: true })
  for (const { file, bytes, unpackedBytes } of packAll(destination)) {
    const name = relative(root, file).padEnd(36)
    process.stdout.write(`${name} ${kilobytes(bytes).padStart(10)}  (unpacked ${kilobytes(unpackedBytes)})\n`)
  }
}
