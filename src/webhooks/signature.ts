// Signatures by Standard Webhooks. During the overlap after a rotation there is one for each secret.
import { Webhook } from 'standardwebhooks'

export interface SignedMessage {
  id: string
  /** Of the attempt: a receiver rejects old ones. */
  sentAt: number
  body: string
}

/** A secret begins with `whsec_`. */
export const signedHeaders = ({ id, sentAt, body }: SignedMessage, secrets: readonly string[]) => ({
  'webhook-id': id,
  'webhook-timestamp': String(Math.floor(sentAt / 1_000)),
  'webhook-signature': secrets
    .map((secret) => new Webhook(secret).sign(id, new Date(sentAt), body))
    .join(' '),
})
