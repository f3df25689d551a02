// What a new password must not be: one that everybody uses, or the address it belongs to.
import { invalid } from './fault.ts'

let common: Promise<Set<string>> | undefined

/** The length is the contract's to check. The list is large, and loaded when somebody chooses a password. */
export async function requireGoodPassword(password: string, email: string): Promise<void> {
  common ??= import('@zxcvbn-ts/language-common').then(
    ({ dictionary }) => new Set(dictionary['passwords-common']),
  )
  const given = password.toLowerCase()
  if ((await common).has(given))
    throw invalid('/body/password', 'is one of the most common passwords; choose another')
  if (given === email || given === email.split('@')[0])
    throw invalid('/body/password', 'must not be your e-mail address; choose another')
}
