// Sends email through the configured SMTP server. The library is loaded when the first email is sent.

export interface Email {
  to: string
  subject: string
  text: string
}

export type SendMail = (email: Email) => Promise<void>

const TIMEOUT_MS = 10_000

export function createMail({ url, from }: { url: string; from: string }): SendMail {
  return async (email) => {
    const { createTransport } = await import('nodemailer')
    const transport = createTransport(url, {
      from,
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
    } as never)
    try {
      await transport.sendMail({ from, ...email })
    } finally {
      transport.close()
    }
  }
}
