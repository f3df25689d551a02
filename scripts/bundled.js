// Where scripts/bundle.ts puts the program, and whether what lies there may run in place of the sources. Plain JavaScript,
// because it is loaded at every start.
import { globSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** As deep below the root as src/main.ts is, so that paths relative to it hold. */
export const bundleFile = new URL('../dist/main.js', import.meta.url)

/** Whether everything that it is made from is older; folders tell of files that were taken away. */
export function isBundleCurrent() {
  const made = statSync(bundleFile, { throwIfNoEntry: false })?.mtimeMs
  if (made === undefined) return false
  const sources = globSync(['src', 'src/**/*', 'package-lock.json'], { cwd: root })
  return sources.every((file) => statSync(`${root}${file}`).mtimeMs < made)
}
