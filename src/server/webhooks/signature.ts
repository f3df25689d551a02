// Signatures by Standard Webhooks. During the overlap after a rotation there is one for each secret.

/**
 * `sentAt` is the time of the attempt, because receivers reject old messages. Secrets begin with `whsec_`.
 */
export async function signedHeaders(
  { id, sentAt, body }: { id: string; sentAt: number; body: string },
  secrets: readonly string[],
) {
  // Loaded on first use: most servers start without webhooks.
  const { Webhook } = await import('standardwebhooks')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(sentAt / 1_000)),
    'webhook-signature': secrets
      .map((secret) => new Webhook(secret).sign(id, new Date(sentAt), body))
      .join(' '),
  }
}
