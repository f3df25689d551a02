// The letters that are sent by mail.

export interface Letter {
  to: string
  subject: string
  text: string
}

const ENDING = 'The link works once, and for 24 hours. If you did not expect this, do nothing.\n'

export const invitationLetter = (
  to: string,
  { by, workspace, link }: { by: string; workspace: string; link: string },
): Letter => ({
  to,
  subject: `${oneLine(by)} invites you to ${oneLine(workspace)} on Adit`,
  text: `${by} invites you to the workspace ${workspace} on Adit. To join, open:\n\n${link}\n\n${ENDING}`,
})

export const resetLetter = (to: string, link: string): Letter => ({
  to,
  subject: 'Set another password for Adit',
  text: `Somebody, most likely you, asked to set another password for Adit. To do so, open:\n\n${link}\n\n${ENDING}`,
})

const oneLine = (text: string) => text.replace(/\s+/g, ' ')
