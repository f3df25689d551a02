// Location and freshness of the bundle in dist. Plain JavaScript, because bin/adit.js loads it at every
// start.
import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** At the same depth as src/main.ts, so that relative paths in the sources stay valid. */
export const bundleFile = new URL('../dist/main.js', import.meta.url)

/**
 * Whether the bundle is newer than everything it is built from. Compares ctime, which cannot be set, unlike
 * mtime: a file may be copied with its old date. Folders are included because deleting a file changes only
 * its folder.
 */
export function isBundleCurrent() {
  const builtAt = statSync(bundleFile, { throwIfNoEntry: false })?.mtimeMs
  if (builtAt === undefined) return false
  const sources = ['src', ...readdirSync(`${root}src`, { recursive: true }).map((file) => `src/${file}`)]
  const others = ['scripts/bundle.ts', 'package-lock.json']
  return [...sources, ...others].every((file) => statSync(`${root}${file}`).ctimeMs < builtAt)
}
