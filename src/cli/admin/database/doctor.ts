import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import type { CheckResult } from '../../../server/doctor/check.ts'
import { examine } from '../../../server/doctor/run.ts'
import { CommandError } from '../../errors.ts'
import { wrap } from '../../help.ts'
import type { Io } from '../../io.ts'
import { bold, dim, green, joinLines, red, type Text, yellow } from '../../style.ts'

const DNS_TIMEOUT_MS = 2_000
const DNS_TRIES = 2

const colors = { ok: green, warning: yellow, problem: red, skipped: dim }
const STATUS_CHARS = Math.max(...Object.keys(colors).map((status) => status.length))

export async function doctor(io: Io): Promise<void> {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES })
  const findings = await examine({ clock: Date.now, random: randomBytes, resolver })
  const count = (status: CheckResult['status']) => findings.filter((one) => one.status === status).length
  const [problems, warnings] = [count('problem'), count('warning')]
  io.data({ problems, warnings, findings }, joinLines(findings.flatMap(formatFindings(findings, io))))
  const summary = `Found ${plural(problems, 'problem')} and ${plural(warnings, 'warning')}.`
  if (problems > 0) throw new CommandError('problems', summary)
  io.info(`\n${summary}`)
}

const plural = (count: number, noun: string) => `${count || 'no'} ${noun}${count === 1 ? '' : 's'}`

const formatFindings = (findings: readonly CheckResult[], { terminal }: Io) => {
  const nameChars = Math.max(...findings.map(({ check }) => check.length))
  const indent = ' '.repeat(STATUS_CHARS + nameChars + 4)
  const width = terminal.columns - indent.length
  return ({ check, status, message, remedy }: CheckResult): Text[] => {
    const [first = '', ...rest] = wrap(message, width)
    return [
      [colors[status](status.padEnd(STATUS_CHARS)), '  ', bold(check.padEnd(nameChars)), '  ', first],
      ...[...rest, ...(remedy ? wrap(`→ ${remedy}`, width) : [])].map((line) => indent + line),
    ]
  }
}
