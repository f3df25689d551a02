// A real Chromium: from npm on x64 Linux, the system's elsewhere.
import { existsSync } from 'node:fs'
import { after, test as testOfNode } from 'node:test'
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
  // Tunnels under a domain that is not localhost, without DNS.
  '--host-resolver-rules=MAP *.example.test 127.0.0.1',
]

const system = SYSTEM.find((path) => existsSync(path))
const fromNpm = process.platform === 'linux' && process.arch === 'x64'
export const hasBrowser = fromNpm || system !== undefined

let launched: Promise<Browser> | undefined

export type Chromium = Pick<Browser, 'newContext'>

/** For tests with a browser: skipped where there is none. */
export const test = hasBrowser ? testOfNode : testOfNode.skip

/** Shared by the tests of a file; contexts are closed after each test. */
export async function openBrowser(t: Test): Promise<Chromium> {
  launched ??= launch(fromNpm ? await chromiumFromNpm.executablePath() : (system as string))
  const browser = await launched
  return {
    async newContext(options) {
      const context = await browser.newContext(options)
      atEnd(t, () => context.close())
      return context
    },
  }
}

// Without the package's own arguments: they run everything in one process, which ends with its first page,
// and disable the web security that the pages are tested under.
const launch = (executablePath: string) => chromium.launch({ executablePath, args: QUIET })

after(async () => (await launched)?.close())
