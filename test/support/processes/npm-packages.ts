// Packages from npm that only a few tests need, in a cache folder outside of the repository: they are large,
// so `npm ci` does not install them.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { npmCi } from './npm.ts'

const PACKAGE_FILES = ['package.json', 'package-lock.json', '.npmrc']

/**
 * Returns a folder with the packages of the lock file in `sources`; installed once for each version of the
 * lock file and each architecture.
 */
export function installPackages(sources: string, name: string): string {
  const lock = createHash('sha256')
    .update(readFileSync(join(sources, 'package-lock.json')))
    .digest('hex')
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'adit-tests')
  const folder = join(cache, `${name}-${process.arch}-${lock.slice(0, 16)}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const partial = mkdtempSync(join(cache, 'install-'))
  for (const file of PACKAGE_FILES) cpSync(join(sources, file), join(partial, file))
  npmCi(partial)
  // Another run may have installed them meanwhile.
  if (existsSync(folder)) rmSync(partial, { recursive: true })
  else renameSync(partial, folder)
  return folder
}
