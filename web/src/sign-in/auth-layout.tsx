// Layout of the pages that do not require a session.
import { Box, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { Logo } from '../icons.tsx'
import classes from './auth-layout.module.css'

interface AuthLayoutProps {
  title: string
  description?: ReactNode
  children?: ReactNode
}

export function AuthLayout({ title, description, children }: AuthLayoutProps) {
  useDocumentTitle(`${title} · Adit`)
  return (
    <Box component="main" mih="100dvh" px="md" py="clamp(2rem, 10vh, 6rem)" className={classes.background}>
      <Stack w="100%" maw={420} mx="auto" gap="lg">
        <Group gap="xs" justify="center" className={classes.logo}>
          <Logo size={36} />
          adit
        </Group>
        <Paper p={{ base: 'lg', xs: 'xl' }} shadow="md">
          <Stack>
            <Stack gap={4}>
              <Title order={1} size="h3">
                {title}
              </Title>
              {description && (
                <Text c="dimmed" size="sm">
                  {description}
                </Text>
              )}
            </Stack>
            {children}
          </Stack>
        </Paper>
      </Stack>
    </Box>
  )
}
