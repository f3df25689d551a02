// Bundles the program into dist, together with the libraries that consist of hundreds of files, which halves
// the start time. bin/adit.js runs the bundle while no source is newer, and the sources otherwise. The API
// client, the edge SDK and the tunnel library are bundled into one self-contained file each, which their
// packages ship. Also builds the package adit-cli.
import { globSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { bundleFile, isBundleCurrent } from './bundled.js'
import { buildClientPackage, hasCurrentPage, oldNodeTransform } from './client-package.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = fileURLToPath(new URL('.', bundleFile))
const BUNDLED_PACKAGES = [
  'typebox',
  'kysely',
  'openid-client',
  'fastify',
  'fast-json-stringify',
  'pino',
  'pg$',
  '@modelcontextprotocol',
  'prom-client',
]
const BUNDLED = new RegExp(`^(\\.|/|${BUNDLED_PACKAGES.join('|')})`)
const WEEK_MS = 7 * 86_400_000
/** The tunnel library, which has to run on the oldest Node that the client supports. */
const TUNNEL = 'tunnel/index'
const entries = {
  main: 'src/main.ts',
  'client/index': 'src/client/index.ts',
  'edge-sdk/index': 'src/edge-sdk/index.ts',
  [TUNNEL]: 'src/tunnel/index.ts',
}

/**
 * Loading a chunk costs about a millisecond, and the chunks of `adit serve` would be sixty. What all commands
 * need is one chunk, what several commands of the operator need of the server another. The rest is split by
 * the commands that need it, so that a tunnel client does not load the server.
 */
const GROUPS = [
  { name: 'common', tags: ['$initial' as const], minShareCount: 2 },
  { name: 'shared', test: /[\\/]src[\\/](?!server)/, minShareCount: 2, entriesAware: true },
  { name: 'server', test: /[\\/]src[\\/]server[\\/](store|domain|verification)[\\/]/, minShareCount: 2 },
]

/** One build for each entry, so that they share no chunks. */
async function build(name: string, source: string) {
  const bundle = await rolldown({
    input: { [name]: root + source },
    cwd: root,
    platform: 'node',
    // Dependencies of a bundled library are bundled too.
    external: (id, importer) => isBuiltin(id) || !(BUNDLED.test(id) || importer?.includes('/node_modules/')),
    ...(name === TUNNEL && { transform: oldNodeTransform }),
    logLevel: 'warn',
  })
  const { output } = await bundle.generate({
    entryFileNames: '[name].js',
    // A group that is split by its users is named after all of them.
    chunkFileNames: ({ name }) => `${name.split('~', 1)}-[hash].js`,
    codeSplitting: { groups: GROUPS },
  })
  return output
}

async function buildAll(): Promise<void> {
  const startedAt = new Date()
  const builtBefore = statSync(bundleFile, { throwIfNoEntry: false })?.mtimeMs
  const builds = Object.entries(entries).map((entry) => build(...entry))
  const [outputs] = await Promise.all([Promise.all(builds), buildClientPackage()])
  const output = outputs.flat()
  // Entries last and each file atomically, because a server may be starting from this folder.
  for (const file of output.toSorted((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) {
    const path = folder + file.fileName
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.${process.pid}`, file.type === 'chunk' ? file.code : file.source)
    // The start of the build, so that sources edited during it are newer.
    utimesSync(`${path}.${process.pid}`, startedAt, startedAt)
    renameSync(`${path}.${process.pid}`, path)
  }
  removeOldChunks(new Set(output.map(({ fileName }) => fileName)), builtBefore, startedAt)
}

/**
 * Running servers may still load chunks of the previous build, so unused chunks are deleted a week after they
 * were replaced.
 */
function removeOldChunks(current: ReadonlySet<string>, builtBefore: number | undefined, now: Date): void {
  for (const name of globSync('{.,client,edge-sdk,tunnel}/*.js{,.*}', { cwd: folder })) {
    if (current.has(name)) continue
    const { mtimeMs } = statSync(folder + name)
    // The modification time of an unused chunk is when it was replaced.
    if (mtimeMs === builtBefore) utimesSync(folder + name, now, now)
    else if (mtimeMs < now.getTime() - WEEK_MS) rmSync(folder + name)
  }
}

const isEntry = (file: { type: string; isEntry?: boolean }) => file.type === 'chunk' && file.isEntry === true

if (!isBundleCurrent()) await buildAll()
else if (!hasCurrentPage()) await buildClientPackage()
