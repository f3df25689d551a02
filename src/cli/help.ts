// Help pages, made from the commands' definitions.
import { settings } from '../config.ts'
import { type Command, commonOptions, type Option } from './command.ts'

const WIDTH_MIN = 24
const ADMIN =
  `It acts on the database that ADIT_DATABASE_URL names (${settings.ADIT_DATABASE_URL.fallback} where that is not set),\n` +
  'and needs no running server.'

export function helpOverview(commands: readonly Command[], group = ''): string {
  const shown = commands.filter(({ name }) => name.startsWith(group))
  return [
    'adit: the control plane of a tunnelling product',
    '',
    `Usage: adit ${group || '<command>'} …`,
    '',
    ...list(shown.map((command) => [usageOf(command), command.summary])),
    '',
    '"adit <command> --help" explains one. Every command takes --json.',
  ].join('\n')
}

export function helpFor(command: Command): string {
  const options = { ...command.options, ...commonOptions }
  return [
    `Usage: adit ${usageOf(command)} [options]`,
    '',
    `${command.summary[0]?.toUpperCase()}${command.summary.slice(1)}.`,
    ...(command.details ? ['', command.details] : []),
    ...(command.name.startsWith('admin ') ? ['', ADMIN] : []),
    '',
    'Options:',
    ...list(Object.entries(options).map(([name, option]) => [flagOf(name, option), summaryOf(option)])),
  ].join('\n')
}

const usageOf = ({ name, arguments: names = [] }: Command) => [name, ...names.map((n) => `<${n}>`)].join(' ')
const flagOf = (name: string, { value }: Option) => `--${name}${value ? ` ${value}` : ''}`
const summaryOf = ({ summary, required }: Option) => (required ? `${summary} (required)` : summary)

export function list(entries: [string, string][]): string[] {
  const width = Math.max(WIDTH_MIN, ...entries.map(([left]) => left.length))
  return entries.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
