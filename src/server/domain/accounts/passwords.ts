// Rejects common passwords, and the email address as password.
import { lazy } from '../../../lib/lazy.ts'
import { invalid } from '../fault.ts'

/** Loaded on first use, because the list is large. */
export const loadCommonPasswords = lazy(async () => {
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  return new Set(dictionary['passwords-common'])
})

/** The contract checks the length. */
export async function requireGoodPassword(password: string, email: string): Promise<void> {
  const lowerCase = password.toLowerCase()
  if ((await loadCommonPasswords()).has(lowerCase))
    throw invalid('/body/password', 'must not be a common password')
  if (lowerCase === email || lowerCase === email.split('@')[0])
    throw invalid('/body/password', 'must not be your email address')
}
