// A setting: an environment variable with its default and its parser.

interface Setting<T> {
  /** For the list of environment variables in `--help`. */
  readonly summary: string
  readonly fallback: string
  /** Parses the value; throws an Error that completes "<name> …", e.g. "must be A or B". */
  read(text: string, environment: NodeJS.ProcessEnv): T
}

export const setting = <T>(summary: string, fallback: string, read: Setting<T>['read']): Setting<T> => ({
  summary,
  fallback,
  read,
})

export class ConfigError extends Error {
  override name = 'ConfigError'
}

type Settings = Readonly<Record<string, Setting<unknown>>>

/** The value of a setting, by its name. */
export type Read<S extends Settings> = <N extends keyof S & string>(name: N) => ReturnType<S[N]['read']>

/** Reads settings and collects their errors, so that all of them are reported together. */
export function createReader<S extends Settings>(environment: NodeJS.ProcessEnv, settings: S) {
  const errors: string[] = []
  const read: Read<S> = <N extends keyof S & string>(name: N) => {
    const { fallback, read } = settings[name] as S[N]
    try {
      return read(environment[name]?.trim() || fallback, environment) as ReturnType<S[N]['read']>
    } catch (error) {
      errors.push(`${name} ${(error as Error).message}`)
      return undefined as ReturnType<S[N]['read']>
    }
  }
  return { read, errors }
}

/** Settings, of which those that are invalid are undefined, and an error for each of these. */
export interface Parsed<T> {
  readonly config: Partial<T>
  readonly errors: readonly string[]
}

export function requireValid<T>({ config, errors }: Parsed<T>): T {
  if (errors.length > 0) throw new ConfigError(`Invalid configuration:\n  ${errors.join('\n  ')}`)
  return Object.freeze(config as T)
}
