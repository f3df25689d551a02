// Puts the program together with the two libraries that come in a thousand files, so that it starts in half the time.
// bin/adit.js runs the result for as long as no source is newer than it; otherwise, the sources themselves.
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { bundleFile, isBundleCurrent } from './bundled.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const INSIDE = /^(\.|\/|typebox|kysely)/

if (!isBundleCurrent()) {
  const folder = fileURLToPath(new URL('.', bundleFile))
  rmSync(folder, { recursive: true, force: true })
  const bundle = await rolldown({
    input: `${root}src/main.ts`,
    cwd: root,
    platform: 'node',
    external: (id) => !INSIDE.test(id),
    logLevel: 'warn',
  })
  await bundle.write({ dir: folder, entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
}
