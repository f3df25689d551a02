// The servers of test/matrix/apps, with their packages from npm in a cache folder outside of the repository:
// Next takes the outermost lock file for the root of its project.
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, type Test } from '../cleanup.ts'
import { installPackages } from '../processes/npm-packages.ts'
import { freePort } from '../processes/ports.ts'
import { root } from '../processes/process.ts'
import { type Program, startProgram } from '../processes/program.ts'
import { until } from '../until.ts'

const SOURCES = join(root, 'test/matrix/apps')
/** The folder with node_modules. */
const install = () => installPackages(SOURCES, 'apps')

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
