// Sends email through the configured SMTP server. The library is loaded when the first email is sent.

export interface Email {
  /**
   * The Message-ID without its host. An email that is sent again has the same, so that its receiver can
   * recognize the duplicate.
   */
  id?: string
  to: string
  subject: string
  text: string
}

export type SendMail = (email: Email) => Promise<void>

const TIMEOUT_MS = 10_000

export function createMail({ url, from }: { url: string; from: string }): SendMail {
  const host = /@([\w.-]+)>?$/.exec(from)?.[1] ?? 'adit'
  return async ({ id, ...email }) => {
    const transport = await openTransport(url, TIMEOUT_MS)
    try {
      await transport.sendMail({ from, ...email, ...(id && { messageId: `<${id}@${host}>` }) })
    } finally {
      transport.close()
    }
  }
}

/** Connects, negotiates TLS and authenticates without sending an email. Rejects if that fails. */
export async function verifyMail(url: string, timeoutMs: number): Promise<void> {
  const transport = await openTransport(url, timeoutMs)
  try {
    await transport.verify()
  } finally {
    transport.close()
  }
}

async function openTransport(url: string, timeoutMs: number) {
  const { createTransport } = await import('nodemailer')
  const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs }
  return createTransport(url, timeouts as never)
}
