"""Operations, bytes and transfers counted on paper, to hold measurements against."""
