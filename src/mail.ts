// Mail with links in it, where a mail server is configured. The library is loaded when the first one is sent.

export interface Letter {
  to: string
  subject: string
  text: string
}

export type SendMail = (letter: Letter) => Promise<void>

const PATIENCE_MS = 10_000

export function createMail({ url, from }: { url: string; from: string }): SendMail {
  return async (letter) => {
    const { createTransport } = await import('nodemailer')
    const transport = createTransport(url, {
      from,
      connectionTimeout: PATIENCE_MS,
      greetingTimeout: PATIENCE_MS,
      socketTimeout: PATIENCE_MS,
    } as never)
    try {
      await transport.sendMail({ from, ...letter })
    } finally {
      transport.close()
    }
  }
}
