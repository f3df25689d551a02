// Checks and their findings. Checks run at the same time, each with a timeout and independent of the others.
import { errorMessage } from '../../lib/startup-error.ts'

export interface Finding {
  /** `skipped` if it is not configured or cannot be checked. */
  status: 'ok' | 'warning' | 'problem' | 'skipped'
  message: string
  /** What to do about it. */
  remedy?: string
}

export interface Check {
  readonly name: string
  run(): Promise<Finding | readonly Finding[]>
}

export interface CheckResult extends Finding {
  check: string
}

export const ok = (message: string): Finding => ({ status: 'ok', message })
export const skipped = (message: string): Finding => ({ status: 'skipped', message })
export const warning = (message: string, remedy: string): Finding => ({ status: 'warning', message, remedy })
export const problem = (message: string, remedy?: string): Finding => ({
  status: 'problem',
  message,
  ...(remedy && { remedy }),
})

/** Returns findings in the order of the checks. A check that throws or times out is a problem too. */
export async function runChecks(checks: readonly Check[], timeoutMs: number): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async (check) => {
      const found = [await runWithTimeout(check, timeoutMs)].flat()
      return found.map((finding) => ({ check: check.name, ...finding }))
    }),
  )
  return results.flat()
}

async function runWithTimeout(check: Check, timeoutMs: number): Promise<Finding | readonly Finding[]> {
  const { promise: timeout, resolve } = Promise.withResolvers<Finding>()
  const message = `The check did not end within ${timeoutMs / 1000} seconds.`
  const timer = setTimeout(
    resolve,
    timeoutMs,
    problem(message, 'Check whether the disk and network respond.'),
  )
  try {
    return await Promise.race([check.run(), timeout])
  } catch (error) {
    return problem(`The check failed: ${errorMessage(error)}.`, 'Fix the cause and run the command again.')
  } finally {
    clearTimeout(timer)
  }
}
