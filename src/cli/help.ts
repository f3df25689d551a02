// Help pages, derived from the definitions of commands. They fit 80 columns.
import { type Command, commonOptions, groups, type Option, visibleOptions } from './command.ts'
import { bold, joinLines, type Text } from './style.ts'

const WIDTH = 80
const GAP = 2
/** A longer name has its summary on the next line. */
const NAME_CHARS_MAX = 36
const ADMIN =
  'Works directly on the database in ADIT_DATABASE_URL (default: adit.db in your data ' +
  'folder). No server needs to run.'

/** `adit --help`: every command, by group. */
export function helpOverview(title: string, commands: readonly Command[]): Text {
  const width = Math.max('--version, -v'.length, ...commands.map(({ name }) => name.length))
  return joinLines([
    title,
    '',
    [bold('Usage:'), ' adit <command> [flags]'],
    ...groups.flatMap((group) => {
      const members = commands.filter((command) => command.group === group)
      const entries = members.map(({ name, summary }): [string, string] => [name, summary])
      return members.length > 0 ? ['', bold(`${group}:`), ...list(entries, width)] : []
    }),
    '',
    bold('Flags:'),
    ...list(
      [
        ['--help, -h', 'show help for adit or a command'],
        ['--json', commonOptions.json?.summary ?? ''],
        ['--version, -v', 'show the version'],
      ],
      width,
    ),
  ])
}

/** `adit keys --help`: the commands that begin with these words, with their arguments. */
export function helpForPrefix(commands: readonly Command[], prefix: string): Text {
  return joinLines([
    [bold('Usage:'), ` adit ${prefix} <command> [flags]`],
    '',
    bold('Commands:'),
    ...list(commands.map((command) => [formatUsage(command), command.summary])),
    '',
    'Run `adit <command> --help` for the flags of a command.',
  ])
}

export function helpFor(command: Command): Text {
  const { details, environment } = command
  return joinLines([
    [bold('Usage:'), ` adit ${formatUsage(command)} [flags]`],
    '',
    `${command.summary[0]?.toUpperCase()}${command.summary.slice(1)}.`,
    ...(details ? ['', ...wrapParagraphs(details)] : []),
    ...(command.group === 'Admin' ? ['', ...wrap(ADMIN, WIDTH)] : []),
    '',
    bold('Flags:'),
    ...list(
      visibleOptions(command).map(([name, option]) => [formatFlag(name, option), formatSummary(option)]),
    ),
    ...(environment
      ? [
          '',
          bold('Environment variables:'),
          ...list(
            Object.entries(environment).map(([name, { summary, fallback }]) => [
              name,
              fallback ? `${summary} (default ${fallback})` : summary,
            ]),
          ),
        ]
      : []),
  ])
}

/** The command with its arguments and required flags. */
function formatUsage(command: Command): string {
  const { name, arguments: names = [], optionalArgument, restArguments, options = {} } = command
  const required = Object.entries(options).filter(([, option]) => option.required)
  return [
    name,
    ...names.map((argument) => `<${argument}>`),
    ...(optionalArgument === undefined ? [] : [`[<${optionalArgument}>]`]),
    ...(restArguments === undefined ? [] : [`[<${restArguments}> …]`]),
    ...required.map(([flag, option]) => formatFlag(flag, option)),
  ].join(' ')
}
const formatFlag = (name: string, { value }: Option) => `--${name}${value ? ` ${value}` : ''}`
const formatSummary = ({ summary, required, repeatable }: Option) =>
  summary + (required ? ' (required)' : '') + (repeatable ? ' (repeatable)' : '')

/** Two columns, the second wrapped. */
function list(
  entries: [name: string, summary: string][],
  width = Math.min(NAME_CHARS_MAX, Math.max(...entries.map(([name]) => name.length))),
): string[] {
  const indent = ' '.repeat(GAP)
  const hanging = ' '.repeat(GAP + width + GAP)
  return entries.flatMap(([name, summary]) => {
    const [first = '', ...rest] = wrap(summary, WIDTH - hanging.length)
    const head =
      name.length <= width
        ? [`${indent}${name.padEnd(width)}${indent}${first}`]
        : [indent + name, hanging + first]
    return [...head, ...rest.map((line) => hanging + line)]
  })
}

const wrapParagraphs = (text: string): string[] =>
  text.split('\n').flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, WIDTH)))

/** Lines of at most `width` characters, unless a word is longer. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
