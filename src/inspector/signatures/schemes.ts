// What each provider signs, and in which headers the signature is.
import type { SignatureScheme } from '../api.ts'

export interface Signed {
  readonly key: Buffer | string
  /** Signed together with the body, before it. */
  readonly prefix: string
  /** One of them has to match: there are several while a secret is replaced. */
  readonly signatures: readonly Buffer[]
  readonly signedAtMs?: number
}

/** The message is part of a sentence. */
export class SignatureProblem extends Error {
  readonly reason: 'missing_header' | 'malformed_header' | 'invalid_secret'

  constructor(reason: SignatureProblem['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** The size of an HMAC with SHA-256. */
const SIGNATURE_BYTES = 32
const FORMS = { hex: '64 hexadecimal digits in lower case', base64: '44 characters of Base64' } as const
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** The name is in lower case. */
type FindHeader = (name: string) => string | undefined

export const schemes: Record<SignatureScheme, (find: FindHeader, secret: string) => Signed> = {
  stripe(find, secret) {
    const header = requireHeader(find, 'stripe-signature')
    const fields = header.split(',').map((field) => field.trim().split('='))
    const valuesOf = (name: string) =>
      fields.flatMap(([field, value = '']) => (field === name ? [value] : []))
    const [time = ''] = valuesOf('t')
    return {
      key: secret,
      prefix: `${time}.`,
      signatures: readSignatures('stripe-signature', valuesOf('v1'), 'hex'),
      signedAtMs: readTime('stripe-signature', time),
    }
  },

  github(find, secret) {
    const header = requireHeader(find, 'x-hub-signature-256')
    const values = header.startsWith('sha256=') ? [header.slice('sha256='.length)] : []
    return { key: secret, prefix: '', signatures: readSignatures('x-hub-signature-256', values, 'hex') }
  },

  slack(find, secret) {
    const header = requireHeader(find, 'x-slack-signature')
    const time = requireHeader(find, 'x-slack-request-timestamp')
    const values = header.startsWith('v0=') ? [header.slice('v0='.length)] : []
    return {
      key: secret,
      prefix: `v0:${time}:`,
      signatures: readSignatures('x-slack-signature', values, 'hex'),
      signedAtMs: readTime('x-slack-request-timestamp', time),
    }
  },

  'standard-webhooks'(find, secret) {
    // Svix, from which the standard comes, has names of its own.
    const names =
      find('webhook-signature') === undefined && find('svix-signature') !== undefined ? 'svix' : 'webhook'
    const id = requireHeader(find, `${names}-id`)
    const time = requireHeader(find, `${names}-timestamp`)
    const header = requireHeader(find, `${names}-signature`)
    const values = header
      .split(' ')
      .flatMap((each) => (each.startsWith('v1,') ? [each.slice('v1,'.length)] : []))
    const key = secret.replace(/^whsec_/, '')
    if (!BASE64.test(key)) throw new SignatureProblem('invalid_secret', 'it has to be Base64, e.g. whsec_…')
    return {
      key: Buffer.from(key, 'base64'),
      prefix: `${id}.${time}.`,
      signatures: readSignatures(`${names}-signature`, values, 'base64'),
      signedAtMs: readTime(`${names}-timestamp`, time),
    }
  },
}

function requireHeader(find: FindHeader, name: string): string {
  const value = find(name)
  if (value === undefined) throw new SignatureProblem('missing_header', `${name} is missing`)
  return value
}

function readSignatures(name: string, values: readonly string[], encoding: 'hex' | 'base64'): Buffer[] {
  const signatures = values.flatMap((value) => {
    const signature = Buffer.from(value, encoding)
    // Node ignores what is no digit; the libraries of the providers compare the texts.
    return signature.length === SIGNATURE_BYTES && signature.toString(encoding) === value ? [signature] : []
  })
  if (signatures.length === 0)
    throw new SignatureProblem('malformed_header', `${name} has no signature of ${FORMS[encoding]}`)
  return signatures
}

function readTime(name: string, text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new SignatureProblem('malformed_header', `${name} has no time`)
  return Number(text) * 1000
}
