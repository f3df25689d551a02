// The members of a workspace, their roles, and invitations.

import { isLoopbackHost } from '../../../../lib/net/hostname.ts'
import { linkUrl } from '../../../domain/accounts/links.ts'
import * as members from '../../../domain/accounts/members.ts'
import { Fault } from '../../../domain/fault.ts'
import { readWorkspace } from '../../../domain/workspaces/manage.ts'
import { invitationEmail } from './emails.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

const MAIL_RETRY_AFTER_S = 30

export const memberHandlers = ({
  address,
  sendMail,
}: Dependencies): HandlerGroup<'members' | 'invitations'> => ({
  'members.list': (ctx) => members.listMembersAndInvitations(ctx),
  'members.set-role': (ctx, { id, role }) => members.setRole(ctx, id, role),
  'members.remove': (ctx, { id }) => members.removeMember(ctx, id),
  'members.leave': (ctx) => members.removeMember(ctx, ctx.actor.id),
  'invitations.create': async (ctx, input) => {
    const { secret, ...created } = await members.invite(ctx, input, { mails: sendMail !== undefined })
    const link = linkUrl(address(), secret)
    const isLocal = isLoopbackHost(new URL(link).hostname)
    const invitation = { ...created, email: input.email.toLowerCase(), role: input.role, isLocal }
    if (!sendMail) return { ...invitation, link }
    const { name: workspace } = await readWorkspace(ctx)
    const email = invitationEmail(invitation.email, {
      inviter: ctx.actor.name,
      workspace,
      link,
      url: address(),
    })
    await sendMail(email).catch((cause) => {
      throw new Fault('unavailable', {
        message: 'The invitation email could not be sent. Try again when the mail server is available.',
        retryAfterS: MAIL_RETRY_AFTER_S,
        cause,
      })
    })
    return { ...invitation, link: null }
  },
  'invitations.revoke': (ctx, { id }) => members.revokeInvitation(ctx, id),
})
