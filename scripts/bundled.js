// Where scripts/bundle.ts puts the program, and whether what lies there may run in place of the sources. Plain JavaScript,
// because it is loaded at every start.
import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** As deep below the root as src/main.ts is, so that paths relative to it hold. */
export const bundleFile = new URL('../dist/main.js', import.meta.url)

/**
 * Whether everything that it is made from was last changed before; folders tell of files that were taken away. By the time of
 * the change, which nobody can set: a file may be put in place with the date that it has elsewhere.
 */
export function isBundleCurrent() {
  const made = statSync(bundleFile, { throwIfNoEntry: false })?.mtimeMs
  if (made === undefined) return false
  const sources = ['src', ...readdirSync(`${root}src`, { recursive: true }).map((file) => `src/${file}`)]
  const others = ['scripts/bundle.ts', 'package-lock.json']
  return [...sources, ...others].every((file) => statSync(`${root}${file}`).ctimeMs < made)
}
