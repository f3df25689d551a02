// A command on a pseudo-terminal, which `script` provides.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, type Test } from '../cleanup.ts'
import { collectText } from '../network/collect.ts'
import { until } from '../until.ts'
import { root } from './process.ts'

export const hasTerminal = existsSync('/usr/bin/script')
export const NO_TERMINAL = '"script" is not installed'

/** `adit` from the sources. Columns are set before the command starts. */
export const atTerminal = (
  t: Test,
  args: string[],
  env: Record<string, string>,
  columns = 80,
  cwd = process.cwd(),
) => runAtTerminal(t, [process.execPath, join(root, 'bin/adit.js'), ...args], { env, columns, cwd })

interface TerminalOptions {
  env: Record<string, string>
  columns?: number
  cwd: string
}

export function runAtTerminal(t: Test, words: string[], { env, columns = 80, cwd }: TerminalOptions) {
  const command = words.map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', `stty cols ${columns} rows 40; exec ${command}`, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd,
  })
  atEnd(t, () => child.kill('SIGKILL'))
  const output = collectText(child.stdout)
  let position = 0
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    output: () => output().replaceAll('\r\n', '\n'),
    ended,
    /** Waits for the next occurrence of the prompt, and types. */
    async reply(prompt: string, text: string) {
      await until(prompt, () => output().includes(prompt, position))
      position = output().indexOf(prompt, position) + prompt.length
      child.stdin.write(text)
    },
  }
}
