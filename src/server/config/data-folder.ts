// The default folder for data: that of the user, not the working directory, where a web server could publish
// databases and secrets.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'

/** Shared by all clones and installations of a user, like the profiles. */
export function dataFolder({ HOME, XDG_DATA_HOME, LOCALAPPDATA }: NodeJS.ProcessEnv = process.env): string {
  const home = HOME || homedir()
  const folders: Partial<Record<NodeJS.Platform, string>> = {
    darwin: join(home, 'Library', 'Application Support'),
    win32: LOCALAPPDATA || join(home, 'AppData', 'Local'),
  }
  // The XDG specification ignores relative paths.
  const xdg = XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(home, '.local', 'share')
  return join(folders[process.platform] ?? xdg, 'adit')
}

/** Prefers `./data`, where earlier versions stored their data, if it has the file or folder. */
export function defaultPath(name: string, environment?: NodeJS.ProcessEnv): string {
  const local = resolve('data', name)
  return existsSync(local) ? local : join(dataFolder(environment), name)
}
