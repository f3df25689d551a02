// A program that is installed on this machine, and what it prints.
import assert from 'node:assert/strict'
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { atEnd, type Test } from '../cleanup.ts'
import { collectText } from '../network/collect.ts'
import { until } from '../until.ts'
import { isListening } from './ports.ts'

export interface Program {
  readonly child: ChildProcess
  /** Everything it has printed. */
  output(): string
  waitFor(pattern: RegExp): Promise<void>
  /** Fails if it ends before. */
  waitForPort(port: number): Promise<void>
  ended: Promise<unknown>
}

/** With `detached` it has a process group of its own, which ends together. */
export function startProgram(t: Test, command: string, args: string[], options: SpawnOptions = {}): Program {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = collectText(child.stdout, child.stderr)
  const ended = once(child, 'close')
  const kill = () => {
    if (options.detached && child.pid && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    else child.kill('SIGKILL')
  }
  // Also if the run is interrupted.
  process.on('exit', kill)
  atEnd(t, () => {
    process.off('exit', kill)
    kill()
    return ended
  })
  return {
    child,
    output,
    waitFor: async (pattern) => {
      await until(`${command} prints ${pattern}`, () => pattern.test(output())).catch((error) => {
        throw new Error(`${error.message}\n${output()}`)
      })
    },
    waitForPort: async (port) => {
      await until(`${command} listens`, () => {
        assert.equal(child.exitCode, null, output())
        return isListening(port)
      })
    },
    ended,
  }
}

/** A command or configuration of a document, with other values: what is replaced must be in it. */
export function replaceShown(text: string, replacements: Record<string, string>): string {
  let replaced = text
  for (const [shown, real] of Object.entries(replacements)) {
    assert.ok(replaced.includes(shown), shown)
    replaced = replaced.replaceAll(shown, real)
  }
  return replaced
}
