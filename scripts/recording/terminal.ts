// A command on a pseudo-terminal of 100 columns, which `script` provides.
import { spawn } from 'node:child_process'
import { adit } from '../demo/processes.ts'

const COLUMNS = 100
const TIMEOUT_MS = 60_000

export function openTerminal(args: string[], env: Record<string, string>) {
  const command = [process.execPath, adit, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', `stty cols ${COLUMNS}; exec ${command}`, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  process.once('exit', () => child.kill('SIGTERM'))
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const read = () => output.replaceAll('\r\n', '\n')
  return {
    output: read,
    type: (text: string) => child.stdin.write(text),
    async waitFor(pattern: RegExp): Promise<RegExpExecArray> {
      const deadline = performance.now() + TIMEOUT_MS
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colors are not part of the text.
      for (const color = /\u001b\[\d*m/g; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
        const found = pattern.exec(read().replace(color, ''))
        if (found) return found
        if (performance.now() > deadline || child.exitCode !== null)
          throw new Error(`"adit ${args.join(' ')}" has not printed ${pattern}:\n${read()}`)
      }
    },
  }
}
