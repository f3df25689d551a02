// What a new password must not be: one that everybody uses, or the address it belongs to.
import { lazily } from '../lazily.ts'
import { invalid } from './fault.ts'

/** The list is large. */
export const loadCommonPasswords = lazily(async () => {
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  return new Set(dictionary['passwords-common'])
})

/** The length is the contract's to check. */
export async function requireGoodPassword(password: string, email: string): Promise<void> {
  const given = password.toLowerCase()
  if ((await loadCommonPasswords()).has(given))
    throw invalid('/body/password', 'is one of the most common passwords; choose another')
  if (given === email || given === email.split('@')[0])
    throw invalid('/body/password', 'must not be your e-mail address; choose another')
}
