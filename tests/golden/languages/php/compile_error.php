<?php
echo (1 +;
