// The API of the dashboard. Authenticated by the session cookie only.
import { readDescription } from '../description.ts'
import { accountOperations } from './account.ts'
import { agentOperations } from './agents.ts'
import { auditOperations } from './audit.ts'
import { deviceApprovalOperations } from './devices.ts'
import { keyRequestOperations } from './key-requests.ts'
import { keyOperations } from './keys.ts'
import { memberOperations } from './members.ts'
import { noticeOperations } from './notices.ts'
import { settingsOperations } from './settings.ts'
import { signInOperations } from './sign-in.ts'
import { tunnelOperations } from './tunnels.ts'
import { webhookOperations } from './webhooks.ts'
import { workspaceOperations } from './workspace.ts'

export const dashboardOperations = [
  ...signInOperations,
  ...accountOperations,
  ...workspaceOperations,
  ...settingsOperations,
  ...deviceApprovalOperations,
  ...agentOperations,
  ...keyOperations,
  ...keyRequestOperations,
  ...noticeOperations,
  ...tunnelOperations,
  ...webhookOperations,
  ...memberOperations,
  ...auditOperations,
  readDescription,
] as const
