// Approval of agents that sign in.
import { approveAgent, denyAgent, readAgent } from '../../../domain/agents/approvals.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export const agentHandlers = ({ services, agents }: Dependencies): HandlerGroup<'agents'> => ({
  'agents.read': ({ user }, { request }) => readAgent(services, agents, user.id, request),
  'agents.approve': (ctx, input) => approveAgent(ctx, agents, input),
  'agents.deny': ({ actor }, input) => denyAgent(services, agents, actor, input),
})
