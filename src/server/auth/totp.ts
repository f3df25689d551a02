// Time-based one-time passwords (RFC 6238), with the parameters that every authenticator app supports: SHA-1,
// six digits, steps of 30 seconds.
import { createHmac, timingSafeEqual } from 'node:crypto'

const ISSUER = 'Adit'
const DIGITS = 6
const STEP_S = 30
/** The length of the MAC, as RFC 4226 recommends. */
export const TOTP_SECRET_BYTES = 20
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export const isTotpFormat = (code: string): boolean => /^[0-9]{6}$/.test(code)

/** Accepts the codes of the current, the previous and the next step, because clocks differ. */
export function verifyTotp(secret: Buffer, code: string, now: number): boolean {
  if (!isTotpFormat(code)) return false
  const step = Math.floor(now / 1000 / STEP_S)
  const matches = [step - 1, step, step + 1].map((near) =>
    timingSafeEqual(Buffer.from(codeAt(secret, near)), Buffer.from(code)),
  )
  return matches.includes(true)
}

function codeAt(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = (mac.at(-1) as number) & 15
  const number = (mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS
  return String(number).padStart(DIGITS, '0')
}

/** The secret as users enter it, and as an `otpauth:` URI for a QR code. */
export function describeTotp(bytes: Buffer, account: string): { secret: string; uri: string } {
  const secret = base32(bytes)
  const parameters = { secret, issuer: ISSUER, digits: String(DIGITS), period: String(STEP_S) }
  const label = `${ISSUER}:${encodeURIComponent(account)}`
  return { secret, uri: `otpauth://totp/${label}?${new URLSearchParams(parameters)}` }
}

/** Adds no padding: the secret is a multiple of five bytes long. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits.replace(/.{5}/g, (five) => BASE32[Number.parseInt(five, 2)] as string)
}
