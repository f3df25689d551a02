// The members of a workspace, their roles, and invitations.

import { isLoopbackHost } from '../../../../lib/net/hostname.ts'
import { errorMessage } from '../../../../lib/startup-error.ts'
import { linkUrl } from '../../../domain/accounts/links.ts'
import * as members from '../../../domain/accounts/members.ts'
import { readWorkspace } from '../../../domain/workspaces/manage.ts'
import { invitationEmail } from './emails.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export const memberHandlers = ({
  publicUrl,
  sendMail,
  log,
}: Dependencies): HandlerGroup<'members' | 'invitations'> => ({
  'members.list': (ctx) => members.listMembersAndInvitations(ctx),
  'members.set-role': (ctx, { id, role }) => members.setRole(ctx, id, role),
  'members.remove': (ctx, { id }) => members.removeMember(ctx, id),
  'members.leave': (ctx) => members.removeMember(ctx, ctx.actor.id),
  'invitations.create': async (ctx, input) => {
    const { secret, ...created } = await members.invite(ctx, input, { mails: sendMail !== undefined })
    const link = linkUrl(publicUrl(), secret)
    const isLinkLocal = isLoopbackHost(new URL(link).hostname)
    const invitation = { ...created, email: input.email.toLowerCase(), role: input.role, isLinkLocal }
    if (!sendMail) return { ...invitation, link }
    const { name: workspace } = await readWorkspace(ctx)
    const email = invitationEmail(invitation.email, {
      inviter: ctx.actor.name,
      workspace,
      link,
      url: publicUrl(),
    })
    try {
      await sendMail(email)
      return { ...invitation, link: null }
    } catch (error) {
      log.warn({ reason: errorMessage(error) }, 'failed to send an invitation; the inviter gets the link')
      await members.discloseInvitation(ctx, invitation.id)
      return { ...invitation, link }
    }
  },
  'invitations.revoke': (ctx, { id }) => members.revokeInvitation(ctx, id),
})
