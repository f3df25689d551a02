// The servers of test/matrix/apps, with their packages from npm in a cache folder outside of the repository:
// Next takes the outermost lock file for the root of its project.
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { atEnd, type Test } from '../cleanup.ts'
import { npmCi } from '../processes/npm.ts'
import { freePort } from '../processes/ports.ts'
import { root } from '../processes/process.ts'
import { type Program, startProgram } from '../processes/program.ts'
import { until } from '../until.ts'

const SOURCES = join(root, 'test/matrix/apps')
const PACKAGE_FILES = ['package.json', 'package-lock.json', '.npmrc']

/** The folder with node_modules; installed once for each version of the lock file and each architecture. */
function install(): string {
  const lock = createHash('sha256')
    .update(readFileSync(join(SOURCES, 'package-lock.json')))
    .digest('hex')
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'adit-tests')
  const folder = join(cache, `apps-${process.arch}-${lock.slice(0, 16)}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const partial = mkdtempSync(join(cache, 'install-'))
  for (const file of PACKAGE_FILES) cpSync(join(SOURCES, file), join(partial, file))
  npmCi(partial)
  // Another run may have installed them meanwhile.
  if (existsSync(folder)) rmSync(partial, { recursive: true })
  else renameSync(partial, folder)
  return folder
}

export interface App extends Program {
  port: number
  /**
   * Replaces the first match in a file of the app, in one step: a server could read a file while it is empty.
   */
  edit(file: string, from: string, to: string): void
}

interface AppOptions {
  /** Programs of packages are in ../node_modules. */
  command(port: string): string[]
  env?: Record<string, string>
}

/** Storybook listens for a moment to see whether its port is free, so a connection alone is not enough. */
const responds = (port: number) =>
  fetch(`http://localhost:${port}/`, { redirect: 'manual' }).then(
    () => true,
    () => false,
  )

/** Runs a copy of test/matrix/apps/<name> until it answers requests. */
export async function startApp(t: Test, name: string, { command, env = {} }: AppOptions): Promise<App> {
  const folder = mkdtempSync(join(install(), `${name}-`))
  atEnd(t, () => rmSync(folder, { recursive: true, maxRetries: 5 }))
  cpSync(join(SOURCES, name), folder, { recursive: true })
  const port = await freePort()
  const [program = '', ...args] = command(String(port))
  const running = startProgram(t, program, args, {
    cwd: folder,
    detached: true,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: String(port),
      NEXT_TELEMETRY_DISABLED: '1',
      ...env,
    },
  })
  await until(`${name} answers`, () => responds(port)).catch((error) => {
    throw new Error(`${error.message}\n${running.output()}`)
  })
  return {
    ...running,
    port,
    edit(file, from, to) {
      const path = join(folder, file)
      const edited = `${folder}.edited`
      writeFileSync(edited, readFileSync(path, 'utf8').replace(from, to))
      renameSync(edited, path)
    },
  }
}
