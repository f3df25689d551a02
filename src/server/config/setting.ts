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

/** Reads settings and collects their errors, so that all of them are reported together. */
export function createReader(environment: NodeJS.ProcessEnv) {
  const errors: string[] = []
  return {
    errors,
    read<T>(name: string, { fallback, read }: Setting<T>): T {
      try {
        return read(environment[name]?.trim() || fallback, environment)
      } catch (error) {
        errors.push(`${name} ${(error as Error).message}`)
        return undefined as T
      }
    },
  }
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
