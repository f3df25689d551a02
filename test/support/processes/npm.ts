// npm, run by the Node that it was installed with: `npm run` puts that of this repository first in the PATH,
// which may be too old or too new for it.
import { execFileSync } from 'node:child_process'
import { delimiter, join } from 'node:path'

const path = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
  .join(delimiter)

const TIMEOUT_MS = 300_000

/** Returns the output. The error of a command that fails has what npm printed. */
export const npm = (args: string[], cwd: string): string =>
  execFileSync('npm', args, {
    cwd,
    env: { ...process.env, PATH: path },
    encoding: 'utf8',
    stdio: 'pipe',
    timeout: TIMEOUT_MS,
  })

/** Installs the packages of the lock file in this folder. */
export const npmCi = (folder: string): string =>
  npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'], folder)
