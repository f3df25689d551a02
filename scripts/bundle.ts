// Puts the program together with the libraries that come in hundreds of files, so that it starts in half the time and signing
// in is loaded in a sixth of the time. A package has nothing else; in a clone bin/adit.js runs the result while no source is newer, and the sources otherwise.
import { globSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { bundleFile, isBundleCurrent } from './bundled.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = fileURLToPath(new URL('.', bundleFile))
const INSIDE = /^(\.|\/|typebox|kysely|better-auth|jose)/
const WEEK_MS = 7 * 86_400_000

async function make(): Promise<void> {
  const began = new Date()
  const madeBefore = statSync(bundleFile, { throwIfNoEntry: false })?.mtimeMs
  const bundle = await rolldown({
    input: {
      main: `${root}src/main.ts`,
      'client/index': `${root}src/client/index.ts`,
      'edge-sdk/index': `${root}src/edge-sdk/index.ts`,
    },
    cwd: root,
    platform: 'node',
    // What a library inside imports is inside too.
    external: (id, importer) => isBuiltin(id) || !(INSIDE.test(id) || importer?.includes('/node_modules/')),
    logLevel: 'warn',
  })
  const { output } = await bundle.generate({
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  // The entries last, and each whole: somebody may be starting just now.
  for (const file of output.toSorted((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) {
    const path = folder + file.fileName
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.${process.pid}`, file.type === 'chunk' ? file.code : file.source)
    // What is edited from here on is newer.
    utimesSync(`${path}.${process.pid}`, began, began)
    renameSync(`${path}.${process.pid}`, path)
  }
  putAway(new Set(output.map(({ fileName }) => fileName)), madeBefore, began)
}

/**
 * A server that runs since before may still load parts of what it was started from: what is not needed any more is marked with
 * the time of that, and goes when it is a week old.
 */
function putAway(kept: ReadonlySet<string>, madeBefore: number | undefined, now: Date): void {
  for (const name of globSync('**/*.js{,.*}', { cwd: folder })) {
    if (kept.has(name)) continue
    const { mtimeMs } = statSync(folder + name)
    if (mtimeMs === madeBefore) utimesSync(folder + name, now, now)
    else if (mtimeMs < now.getTime() - WEEK_MS) rmSync(folder + name)
  }
}

const isEntry = (file: { type: string; isEntry?: boolean }) => file.type === 'chunk' && file.isEntry === true

if (!isBundleCurrent()) await make()
