"""Messages to people, and the senders that take them to chats: one file a chat. Notices in, calls to others out."""
