// A real mail server, and the emails that it has received.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { atEnd, type Test } from '../cleanup.ts'
import { collectText } from '../network/collect.ts'

export interface ReceivedEmail {
  to: string
  /** With the headers. */
  text: string
}

export async function startMailServer(t: Test, accepts: (address: string) => boolean = () => true) {
  const emails: ReceivedEmail[] = []
  const state = {
    /** Called before an email is acknowledged. */
    beforeAcknowledge: async (_email: ReceivedEmail) => {},
  }
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo({ address }, _session, done) {
      done(accepts(address) ? null : Object.assign(new Error('no such mailbox'), { responseCode: 550 }))
    },
    onData(stream, session, done) {
      const text = collectText(stream)
      stream.on('end', async () => {
        const to = session.envelope.rcptTo.map(({ address }) => address).join()
        const email = { to, text: readable(text()) }
        emails.push(email)
        await state.beforeAcknowledge(email)
        done()
      })
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  atEnd(t, () => new Promise<void>((resolve) => server.close(resolve)))
  const { port } = server.server.address() as AddressInfo
  return Object.assign(state, { emails, env: mailTo(port) })
}

export const mailTo = (port: number) => ({
  ADIT_SMTP_URL: `smtp://127.0.0.1:${port}`,
  ADIT_MAIL_FROM: 'Adit <adit@example.com>',
})

/** Quoted-printable, as long lines are sent. */
const readable = (text: string) => text.replaceAll('=\r\n', '').replaceAll('=3D', '=')
