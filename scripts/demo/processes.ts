// Runs adit as its users do. All data is in a temporary folder.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const adit = fileURLToPath(new URL('../../bin/adit.js', import.meta.url))
export const folder = mkdtempSync(join(tmpdir(), 'adit-demo-'))
export const databaseUrl = `sqlite:${join(folder, 'adit.db')}`

const children: ChildProcess[] = []

/** Only the demo's own settings: those of the user's environment are for other deployments. */
const environment = (more: Record<string, string>) => ({
  PATH: process.env.PATH ?? '',
  HOME: folder,
  ADIT_LOG_LEVEL: 'warn',
  // Makes the commands exit when this process is gone, as they do when npm is.
  npm_lifecycle_event: 'demo',
  ADIT_DATABASE_URL: databaseUrl,
  ...more,
})

/** Starts a long-running command and resolves with its first line of JSON. */
export async function start<T>(
  args: string[],
  env: Record<string, string>,
  stderr: 'inherit' | 'pipe' = 'inherit',
): Promise<T & { child: ChildProcess; lastError(): string | undefined }> {
  // In a process group of its own: Ctrl-C reaches only this process, which stops the others in order.
  const child = spawn(process.execPath, [adit, ...args, '--json'], {
    env: environment(env),
    stdio: ['ignore', 'pipe', stderr],
    detached: true,
  })
  children.push(child)
  let messages = ''
  child.stderr?.on('data', (chunk) => {
    messages = String(chunk)
  })
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk).split('\n')[0] as string))
    child.once('exit', () => reject(new Error(`"adit ${args.join(' ')}" exited. ${messages}`)))
  })
  child.stdout?.resume()
  return { ...(JSON.parse(line) as T), child, lastError: () => errorIn(messages) }
}

/** The message of an error that a command has written as JSON. */
function errorIn(output: string): string | undefined {
  const [, text] = /"message":("(?:[^"\\]|\\.)*")/.exec(output) ?? []
  return text && (JSON.parse(text) as string)
}

/** Runs a command to its end. */
export async function run<T>(args: string[], env: Record<string, string> = {}): Promise<T> {
  const options = { env: environment(env) }
  const { stdout } = await promisify(execFile)(process.execPath, [adit, ...args, '--json'], options)
  return JSON.parse(stdout) as T
}

/** Stops the tunnels first and the control plane last, so that all usage is reported. */
export async function stopAll(): Promise<void> {
  for (const child of children.toReversed()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }
  rmSync(folder, { recursive: true, force: true })
}

/** The port in the variable; else the usual one, or any free port if that is in use. */
export function choosePort(variable: 'ADIT_PORT' | 'ADIT_EDGE_PORT', usual: number): Promise<string> {
  const port = process.env[variable]?.trim()
  if (port) return Promise.resolve(port)
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve('0'))
    probe.listen(usual, '127.0.0.1', () => probe.close(() => resolve(String(usual))))
  })
}
