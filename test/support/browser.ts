// A real Chromium: from npm on x64 Linux, the system's elsewhere.
import { existsSync } from 'node:fs'
import chromiumFromNpm from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import { atEnd, type Test } from './cleanup.ts'

const SYSTEM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
]

/** Undefined if there is none; the test is then skipped. */
export async function openBrowser(t: Test): Promise<Browser | undefined> {
  const system = SYSTEM.find((path) => existsSync(path))
  const fromNpm = process.platform === 'linux' && process.arch === 'x64'
  if (!fromNpm && !system) return undefined
  // Without the package's own arguments: they run everything in one process, which ends with its first page,
  // and disable the web security that the pages are tested under.
  const executablePath = fromNpm ? await chromiumFromNpm.executablePath() : (system as string)
  const browser = await chromium.launch({ executablePath, args: QUIET })
  atEnd(t, () => browser.close())
  return browser
}
