// What the server knows of the agent that asks to sign in.
import classes from '../device/device.module.css'
import type { Agent } from '../queries.ts'

export function AgentFacts({ agent: { name, host, target, isLocal } }: { agent: Agent }) {
  return (
    <dl className={classes.facts}>
      <dt>Agent</dt>
      <dd>{name}</dd>
      <dt>Published by</dt>
      <dd>{host ?? 'Unknown: the name is not verified'}</dd>
      <dt>Returns to</dt>
      <dd>{isLocal ? `An app on this computer (${target})` : target}</dd>
    </dl>
  )
}
