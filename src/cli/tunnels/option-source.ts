// Messages name an option of a tunnel as the user wrote it: a flag of the command, or a member of adit.json.
import { PROJECT_FILE } from '../../contract/project-file.ts'
import { UsageError } from '../errors.ts'

type Option =
  | 'allow-ip'
  | 'basic-auth'
  | 'ca'
  | 'host-header'
  | 'insecure'
  | 'inspect'
  | 'mask-header'
  | 'name'
  | 'serve'
  | 'target'
  | 'type'

export interface OptionSource {
  /** The error for an invalid value. `describe` gets the name of another option, too. */
  invalid(option: Option, describe: (nameOption: (option: Option) => string) => string): UsageError
  /** How to set an option, for advice. */
  advise(option: Option, value?: string): string
}

const flag = (option: Option) => `--${option}`

export const flagSource: OptionSource = {
  invalid: (_, describe) => new UsageError(describe(flag)),
  advise(option, value) {
    if (option === 'type') return `\`adit tunnel ${value}\``
    return value === undefined ? flag(option) : `${flag(option)} ${value}`
  },
}

const member = (option: Option) => option.replace(/-(.)/, (_, letter: string) => letter.toUpperCase())

/** A tunnel of the project file at `path`. */
export const memberSource = (path: string, tunnel: string): OptionSource => ({
  invalid: (option, describe) =>
    new UsageError(`${path}: /tunnels/${tunnel}/${member(option)}: ${describe(member)}`),
  advise: (option, value) =>
    `"${member(option)}": ${value === undefined ? true : JSON.stringify(value)} in ${PROJECT_FILE}`,
})
