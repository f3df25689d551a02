// Webhook endpoints of a workspace.
import * as deliveries from '../../../domain/webhooks/deliveries.ts'
import * as webhooks from '../../../domain/webhooks/endpoints.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export const webhookHandlers = ({ webhooks: rules }: Dependencies): HandlerGroup<'webhooks'> => ({
  'webhooks.list': async (ctx) => ({
    endpoints: await webhooks.listWebhooks(ctx),
    allowsHttp: rules.allowsHttp,
  }),
  'webhooks.create': (ctx, input) => webhooks.createWebhook(ctx, rules, input),
  'webhooks.update': (ctx, { id, workspace: _, ...change }) => webhooks.updateWebhook(ctx, rules, id, change),
  'webhooks.delete': (ctx, { id }) => webhooks.deleteWebhook(ctx, id),
  'webhooks.rotate': (ctx, { id, overlap }) => webhooks.rotateSecret(ctx, rules, id, overlap),
  'webhooks.test': (ctx, { id }) => deliveries.sendTestEvent(ctx, id),
  'webhooks.deliveries': (ctx, { id, ...page }) => deliveries.listDeliveries(ctx, id, page),
  'webhooks.delivery': (ctx, { id, position }) => deliveries.readDelivery(ctx, id, Number(position)),
  'webhooks.resend': (ctx, { id, position }) => deliveries.resend(ctx, id, Number(position)),
})
