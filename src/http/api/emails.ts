// The letters that are sent by mail.
import { cleanText } from '../../contract/text.ts'

export interface Email {
  to: string
  subject: string
  text: string
}

const ENDING = 'The link works once, and for 24 hours. If you did not expect this, do nothing.\n'

/** The subject holds no text that anybody chose: the mail comes from this server, in its name. */
export const invitationEmail = (
  to: string,
  { by, workspace, link }: { by: string; workspace: string; link: string },
): Email => ({
  to,
  subject: 'Invitation to a workspace on Adit',
  text:
    `You are invited to a workspace on Adit.\n\nWorkspace: ${unlinked(workspace)}\nInvited by: ${unlinked(by)}\n\n` +
    `To join, open:\n\n${link}\n\n${ENDING}`,
})

export const resetEmail = (to: string, link: string): Email => ({
  to,
  subject: 'Set another password for Adit',
  text: `Somebody, most likely you, asked to set another password for Adit. To do so, open:\n\n${link}\n\n${ENDING}`,
})

/** A name on one line, in which no mail program finds an address to make a link of: `evil.example` is `evil example`. */
const unlinked = (name: string) =>
  cleanText(name.normalize('NFKC'), 80)
    .replace(/[.:/\\@\u3002]+(?=\S)/gu, ' ')
    .trim()
