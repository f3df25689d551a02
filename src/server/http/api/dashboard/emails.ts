// The text of the emails that the dashboard sends.

import { withoutLinks } from '../../../../contract/text.ts'
import { clientCommands, LOCAL_PORT } from '../../../../lib/client-commands.ts'
import type { Email } from '../../../mail.ts'

/** The subject contains no text that users chose: the email is sent in the name of this server. */
export const invitationEmail = (
  to: string,
  { inviter, workspace, link, url }: { inviter: string; workspace: string; link: string; url: string },
): Email => {
  const { install, login, tunnel } = clientCommands(url)
  return {
    to,
    subject: 'Invitation to a workspace on Adit',
    text: `Hello,

You have been invited to join a workspace on Adit.

Workspace: ${withoutLinks(workspace)}
Invited by: ${withoutLinks(inviter)}

To accept the invitation, open this link:

${link}

The link works once and expires in 24 hours.

Then, on the machine running your app, install the client, sign in, and open a tunnel to port ${LOCAL_PORT}:

${install}
${login}
${tunnel}

If you did not expect this invitation, you can ignore this email.
`,
  }
}

export const resetEmail = (to: string, link: string): Email => ({
  to,
  subject: 'Reset your Adit password',
  text: `Hello,

We received a request to reset the password of your Adit account.
To choose a new password, open this link:

${link}

The link works once and expires in 24 hours.
If you did not request this, you can ignore this email. Your password stays the same.
`,
})
