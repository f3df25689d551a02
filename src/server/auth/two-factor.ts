// Two-factor authentication: TOTP codes, and recovery codes that work once. Callers hold a lock on the user's
// row, so that a code is accepted once, and every wrong code at sign-in is counted.
import { base62 } from '../../lib/credentials/secret.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import { consumeCode } from '../domain/accounts/sign-ins.ts'
import type { Services } from '../domain/context.ts'
import { decrypt, deriveEncryptionKey, deriveKeyedHash, encrypt } from '../domain/encryption.ts'
import { Fault } from '../domain/fault.ts'
import {
  findTwoFactor,
  setTwoFactor,
  type TwoFactorRow,
  updateTwoFactor,
} from '../store/accounts/two-factors.ts'
import type { UserRow } from '../store/accounts/users.ts'
import type { Tx } from '../store/engine/store.ts'
import { describeTotp, isTotpFormat, TOTP_SECRET_BYTES, verifyTotp } from './totp.ts'

/** After this many wrong codes in a row, no code is accepted for `LOCK_MS`. */
const FAILED_CODES_MAX = 10
const LOCK_MS = 15 * MINUTE_MS
const RECOVERY_CODES = 10
const RECOVERY_CODE_CHARS = 10

/** `serverSecret` is ADIT_SECRET. `onProblem` gets messages for the log. */
export function createTwoFactor(
  services: Services,
  serverSecret: string,
  onProblem: (message: string) => void,
) {
  const { random, clock } = services
  /** One key per user, so that a secret copied to another user's row cannot be decrypted. */
  const keyFor = (userId: string) => deriveEncryptionKey(`two-factor secret of ${userId}`, serverSecret)
  /** Keyed, because codes are short enough to be found by brute force. */
  const hashRecoveryCode = deriveKeyedHash('recovery codes', serverSecret)

  function createRecoveryCode(): string {
    const code = base62(BigInt(`0x${Buffer.from(random(16)).toString('hex')}`), RECOVERY_CODE_CHARS)
    return `${code.slice(0, 5)}-${code.slice(5)}`
  }

  function readSecret({ user_id, secret }: TwoFactorRow): Buffer {
    try {
      return Buffer.from(decrypt<string>(keyFor(user_id), secret), 'base64')
    } catch (error) {
      onProblem(`cannot decrypt a two-factor secret; was ADIT_SECRET changed? ${(error as Error).message}`)
      throw new Fault('unauthorized', {
        message:
          'Two-factor authentication of your account failed. Ask the operator of this server to reset it.',
      })
    }
  }

  const useTotp = async (db: Tx, row: TwoFactorRow, code: string): Promise<boolean> =>
    verifyTotp(readSecret(row), code, clock()) && consumeCode(db, services, row.user_id, code)

  async function useRecoveryCode(db: Tx, row: TwoFactorRow, code: string): Promise<boolean> {
    // Throws and logs if ADIT_SECRET has changed; otherwise every code would just look wrong.
    readSecret(row)
    const hashes: string[] = JSON.parse(row.recovery_codes)
    const others = hashes.filter((hash) => hash !== hashRecoveryCode(code))
    if (others.length === hashes.length) return false
    await updateTwoFactor(db, row.user_id, { recovery_codes: JSON.stringify(others) })
    return true
  }

  return {
    /** Creates a secret and recovery codes. They replace a setup that was not confirmed. */
    async begin(db: Tx, { id, email }: UserRow) {
      const bytes = Buffer.from(random(TOTP_SECRET_BYTES))
      const recoveryCodes = Array.from({ length: RECOVERY_CODES }, createRecoveryCode)
      await setTwoFactor(db, {
        user_id: id,
        secret: encrypt(keyFor(id), bytes.toString('base64'), random),
        recovery_codes: JSON.stringify(recoveryCodes.map(hashRecoveryCode)),
        failed_codes: 0,
        locked_until: null,
      })
      return { ...describeTotp(bytes, email), recoveryCodes }
    },

    /** Verifies a code of the authenticator app, and uses it up. */
    async confirm(db: Tx, userId: string, code: string): Promise<boolean> {
      const row = await findTwoFactor(db, userId)
      return row !== undefined && useTotp(db, row, code)
    },

    /** Verifies a TOTP or recovery code at sign-in, and uses it up. Wrong ones are counted. */
    async verifySignInCode(db: Tx, userId: string, code: string): Promise<boolean> {
      const row = await findTwoFactor(db, userId)
      const now = clock()
      if (!row || isLocked(row, now)) return false
      if (await (isTotpFormat(code) ? useTotp : useRecoveryCode)(db, row, code)) {
        await updateTwoFactor(db, userId, { failed_codes: 0, locked_until: null })
        return true
      }
      const failed = row.locked_until === null ? row.failed_codes + 1 : 1
      const lockedUntil = failed >= FAILED_CODES_MAX ? now + LOCK_MS : null
      await updateTwoFactor(db, userId, { failed_codes: failed, locked_until: lockedUntil })
      return false
    },
  }
}

/** Ignores a lock that ends further away than `LOCK_MS`: a clock that was ahead has set it. */
const isLocked = ({ locked_until }: TwoFactorRow, now: number): boolean =>
  locked_until !== null && now < locked_until && locked_until <= now + LOCK_MS
