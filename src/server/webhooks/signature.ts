// Signatures by Standard Webhooks. During the overlap after a rotation there is one for each secret.
interface SignedMessage {
  id: string
  /** The time of the attempt: a receiver rejects old ones. */
  sentAt: number
  body: string
}

/** A secret begins with `whsec_`. */
export async function signedHeaders({ id, sentAt, body }: SignedMessage, secrets: readonly string[]) {
  // A server without webhooks does not load it.
  const { Webhook } = await import('standardwebhooks')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(sentAt / 1_000)),
    'webhook-signature': secrets
      .map((secret) => new Webhook(secret).sign(id, new Date(sentAt), body))
      .join(' '),
  }
}
