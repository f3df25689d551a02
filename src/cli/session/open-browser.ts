// Opens a web page in the user's browser.
import { spawn } from 'node:child_process'
import { hasDesktop } from '../../server/config/environment.ts'

/** Runs without a shell, which would interpret characters of the URL. */
const commands: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens http and https only: other URLs can start programs. Returns false if there is no browser. */
export function openBrowser(url: string): boolean {
  if (!hasDesktop()) return false
  const [command, ...options] = commands[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...options, new URL(url).href], { stdio: 'ignore', detached: true })
  // The user has the URL as well.
  child.once('error', () => {})
  child.unref()
  return true
}
